"""Reference trainings: complete, plain PyTorch programs, each with its slow and its hand-tuned presets.

    python -m hotlap_workloads.train speaker_verify --preset fast --data DIR

``engine`` is the shared loop, ``parts`` the building blocks that several trainings share, and every other folder one
training. Nothing of the tool is imported, ``hotlap.pack`` excepted.
"""

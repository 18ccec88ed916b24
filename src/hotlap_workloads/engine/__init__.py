"""What all trainings share: settings, loop, evaluation cadence, checkpoints, trackers, ranks."""

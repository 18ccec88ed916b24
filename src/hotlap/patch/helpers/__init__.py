"""Functions that a patch may write into the user's script: the source of these modules, one public function each.

They use the standard library and torch, and nothing of ours: the patched script runs without Hotlap. Modules are
imported under private names: a script may call something else `time` or `queue`.
"""

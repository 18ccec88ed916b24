"""The guard of a long run: follows its timeline from outside, warns when it gets slower, and says why."""

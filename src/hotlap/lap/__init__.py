"""The lap: walks the stages in a loop (diagnose, pull, measure, keep or put back), then proves. Never prints."""

"""The lap: walks the stages in a loop (diagnose, pull a lever, measure, keep or put back) and then proves. Never prints."""

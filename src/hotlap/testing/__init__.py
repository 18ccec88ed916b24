"""Shipped test helpers: the lever conformance kit and timeline builders."""

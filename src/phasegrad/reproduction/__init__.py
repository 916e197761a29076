"""Reproduction: runs the pieces of studies here or on a cluster, and keeps what is finished."""

"""Studies: one file per published claim or control, each with its protocol, its figures and its checks."""

"""Reports: what studies found, as tables, figures and files."""

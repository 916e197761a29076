"""What commands print: tables for the terminal, and the pictures behind `--plot`."""

from phasegrad.cli.tables.layout import Column, columns, table

__all__ = ["Column", "columns", "table"]

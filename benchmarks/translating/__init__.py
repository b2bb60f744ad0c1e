"""The multilingual builder beside `datasets.map`: made rows, a recorded ledger, and what is measured."""

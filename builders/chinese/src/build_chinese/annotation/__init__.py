"""Annotation of Chinese responses: tasks of three, sheets and Label Studio, marks read back, consensus, agreement."""

"""Annotation of Chinese responses: tasks, CSV sheets, Label Studio, annotations, consensus and agreement."""

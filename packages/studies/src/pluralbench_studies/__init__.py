"""Studies with people: who gets which item, sheets and Label Studio, and how far they agree."""

"""What runs found, for people: tables and figures."""

"""Personalized reward models: small networks on the vectors of a frozen backbone. Each method has a file."""

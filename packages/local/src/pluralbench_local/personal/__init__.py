"""Personalized reward models: small networks on the vectors of a frozen backbone, one file a method."""

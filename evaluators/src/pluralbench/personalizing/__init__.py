"""Personalized reward models: their users, the models trained with and without a profile, and the page of them."""

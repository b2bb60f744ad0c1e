from .embedded import embedded_folder
from .errors import PolicyError
from .generation import Generation, chat_model_of

__all__ = ["Generation", "PolicyError", "chat_model_of", "embedded_folder"]

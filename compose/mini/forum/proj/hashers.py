from django.contrib.auth.hashers import PBKDF2PasswordHasher


class CheapHasher(PBKDF2PasswordHasher):
    """PBKDF2 with few rounds: the passwords are public, and a login must not take half a second."""

    algorithm = "pbkdf2_cheap"
    iterations = 1000

"""What a process may remember of the database."""

from django.core.cache.backends.locmem import LocMemCache

# Copies of rows under a constant name. All other keys carry a random version that lies in the database itself, so what was
# remembered before a rewind, or in another worker, is not found under the version that holds now.
UNVERSIONED = ("misago_categories_tree", "misago_agreements", "misago_admin_analytics")


class VersionedCache(LocMemCache):
    """Keeps what is named by a version, and forgets the rest at once."""

    def set(self, key, *args, **kwargs):
        if not key.startswith(UNVERSIONED):
            super().set(key, *args, **kwargs)

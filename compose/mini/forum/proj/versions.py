"""The data of the database that a process may cache."""

from django.core.cache.backends.locmem import LocMemCache

# Copies of rows under constant names. All other keys contain a random version that is stored in the database itself, so
# an entry from before a rewind, or from another worker, is not found under the current version.
UNVERSIONED = ("misago_categories_tree", "misago_agreements", "misago_admin_analytics")


class VersionedCache(LocMemCache):
    """Caches entries whose key contains a version, and does not store others."""

    def set(self, key, *args, **kwargs):
        if not key.startswith(UNVERSIONED):
            super().set(key, *args, **kwargs)

"""The settings of an administrator, and fixed values for the random words that Misago drew when it created its tables."""

from misago.cache.models import CacheVersion
from misago.conf.models import Setting
from misago.themes.models import Theme
from misago.users.bans import BANS_CACHE
from misago.users.models import BanCache, User

from seed.common import Dice

SETTINGS = {
    "forum_name": "Larkboard", "logo_text": "Larkboard", "index_header": "Larkboard", "forum_address": "http://localhost:9999/",
    "index_title": "Larkboard, the message board of Larkmoor County",
    "index_meta_description": "Talk of the towns, trades and pastimes of Larkmoor County.",
    "forum_footnote": "Larkboard, the message board of Larkmoor County",
    # Avatars are drawn here and not fetched from gravatar.com.
    "default_avatar": "dynamic", "default_gravatar_fallback": "dynamic",
    # There is no limit of posts per hour or day: an agent may post as fast as it can.
    "hourly_post_limit": "0", "daily_post_limit": "0",
    "allow_delete_own_account": "True", "allow_data_downloads": "False",
    "username_length_max": "20",
    # Notifications stay on the site: no mail leaves it.
    "watch_started_threads": "1", "watch_replied_threads": "1"}


def make():
    for name, value in SETTINGS.items():
        assert Setting.objects.filter(setting=name).update(dry_value=value), f"there is no setting {name}"


def fix_versions():
    dice = Dice("versions")
    for version in CacheVersion.objects.order_by("cache"):
        CacheVersion.objects.filter(pk=version.pk).update(version=dice.word())
    for theme in Theme.objects.order_by("pk"):
        Theme.objects.filter(pk=theme.pk).update(dirname=dice.word())
    # Otherwise the first page that shows a member stores that the member is not banned.
    bans = CacheVersion.objects.get(cache=BANS_CACHE).version
    BanCache.objects.bulk_create(BanCache(user=user, cache_version=bans) for user in User.objects.order_by("pk"))

"""The sites of the environment, their addresses, and their accounts."""

import os
from collections import namedtuple
from urllib.parse import urlsplit

# The key names the site's variable in the Compose file, which contains its address.
Site = namedtuple("Site", "key name about manual")
SITES = [
    Site("SHOPPING", "One Stop Market", "The web shop of the county: two hundred products, baskets, orders, reviews.", "shop"),
    Site("SHOPPING_ADMIN", "One Stop Market, administration", "The back office of the shop: orders, products, prices, customers.", "backoffice"),
    Site("REDDIT", "Larkboard", "The county's forum: threads, replies, likes and profiles.", "forum"),
    Site("GITLAB", "Larkmoor Forge", "Software projects of the county: files, commits, issues, forks and pull requests.", "forge"),
    Site("WIKIPEDIA", "Encyclopaedia", "Towns, people, companies and the history of Larkmoor County.", "wiki"),
    Site("MAP", "Larkmoor Map", "The map of the county: search, addresses, directions.", "map"),
    Site("TURKLE", "Turkle", "Small tasks for workers: forms to be filled in and sent.", "turkle"),
]

Account = namedtuple("Account", "site role name password")
ACCOUNTS = [
    Account("One Stop Market", "customer", "emma.lopez@gmail.com", "Password.123"),
    Account("One Stop Market, administration", "administrator", "admin", "admin1234"),
    Account("Larkboard", "member", "MarvelsGrantMan136", "test1234"),
    Account("Larkboard", "moderator", "rowanlindqvist", "test1234"),
    Account("Larkboard", "administrator", "admin", "admin1234"),
    Account("Larkmoor Forge", "developer", "byteblaze", "hello1234"),
    Account("Larkmoor Forge", "administrator", "root", "root1234"),
    Account("Turkle", "worker", "worker", "worker1234"),
    Account("Turkle", "second worker", "worker2", "worker1234"),
    Account("Turkle", "administrator", "admin", "admin1234"),
]


def url(site, host):
    """Returns the address of a site. A place that begins with a colon is a port of the host in the visitor's request."""
    place = os.environ.get(site.key, "")
    if not place.startswith(":"):
        return place
    try:
        name = urlsplit(f"//{host}").hostname or "localhost"
    except ValueError:
        name = "localhost"
    return f"http://{f'[{name}]' if ':' in name else name}{place}"

"""Creates twenty forums, open to all, each with a pinned announcement by the administrator."""

from misago.acl.cache import clear_acl_cache
from misago.categories.models import Category, RoleCategoryACL

FORUMS = [  # name, colour, purpose
    ("AskLarkmoor", "#c2185b", "Ask the county anything. Somebody's aunt will know."),
    ("larkmoor", "#303f9f", "News, notices and gossip from all twelve towns."),
    ("PortElsing", "#0288d1", "For those who live by the harbour, and those who would like to."),
    ("HarrowgateMills", "#7b1fa2", "The Loom: streets, cafes, schools and neighbours."),
    ("books", "#689f38", "Novels, poems and histories, from here and elsewhere."),
    ("movies", "#d32f2f", "Films, cinemas and what should be filmed at last."),
    ("music", "#512da8", "Concerts, bands, fiddles and the festival circuit."),
    ("gaming", "#e64a19", "Board games first; anything with rules is welcome."),
    ("technology", "#0097a7", "Gadgets, networks and the companies behind them."),
    ("programming", "#00796b", "Software made in Larkmoor: releases, bugs and questions."),
    ("DIY", "#f57c00", "Things mended, built and occasionally ruined at home."),
    ("space", "#1976d2", "The sky above the moor, and the observatory below it."),
    ("history", "#795548", "Floods, strikes, charters and who was there."),
    ("museums", "#5d4037", "All the museums of the county: opening hours, fees and what to see."),
    ("food", "#ffa000", "Where to eat, what to cook, what to leave on the plate."),
    ("sports", "#388e3c", "Weavers, Mariners, Arches and everybody else."),
    ("gardening", "#558b2f", "Soil, seeds, slugs and salt wind."),
    ("photography", "#455a64", "Pictures of the county and how to take them."),
    ("travel", "#00838f", "Parks, rivers, paths and beds for the night."),
    ("BuyItForLife", "#6d4c41", "Things that last, and things that did not."),
]


def make():
    root = Category.objects.root_category()
    first = Category.objects.get(slug="first-category")
    rights = list(RoleCategoryACL.objects.filter(category=first).order_by("pk"))
    places = []
    for name, colour, description in FORUMS:
        place = Category(description=description, color=colour)
        place.set_name(name)
        place.insert_at(root, position="last-child", save=True)
        for right in rights:
            RoleCategoryACL.objects.create(role=right.role, category=place, category_role=right.category_role)
        places.append(place)
    first.refresh_from_db()
    first.delete()
    clear_acl_cache()
    return places

"""Creates the members: the living people of the world, WebArena's account and an administrator."""

import datetime as dt

from django.contrib.auth import get_user_model
from django.db.models import F
from misago.acl.models import Role
from misago.threads.models import Post, Thread
from misago.users.activepostersranking import build_active_posters_ranking
from misago.users.avatars import dynamic, store
from misago.users.models import Online, Rank

from seed.common import NOW, WORLD, Dice, password

BIOS = ["{Trade} from {origin}, now in {home}. {Interests}.", "I went to {school} and stayed in {home}. {Interests}, in that order.",
        "{Interests}. {Trade} on weekdays.", "Lives in {home}. Ask me about {interest}.", ""]


def profile(dice, person):
    first, second = person["interests"]
    bio = dice.pick(BIOS).format(Trade=person["occupation"].capitalize(), origin=person["birthplace"], home=person["home"], school=person["school"],
                                 Interests=f"{first.capitalize()} and {second}", interest=first)
    fields = {"real_name": person["name"], "location": f"{person['home']}, Larkmoor", "bio": bio,
              "gender": dice.pick(["", "female" if person["pronoun"] == "she" else "male"])}
    return {name: value for name, value in fields.items() if value}


def make():
    dice, User = Dice("members"), get_user_model()
    # Misago gives the files random names; here they come from the world's dice.
    store.get_random_string = dice.word
    secret = password("test1234")
    team = Rank.objects.get(name="Forum team")

    def member(name, email, joined, **more):
        user = User.objects.create_user(name, email, None, joined_on=joined, watch_started_threads=1, watch_replied_threads=1, **more)
        User.objects.filter(pk=user.pk).update(password=secret)
        dynamic.set_avatar(user)
        user.home = more.get("profile_fields", {}).get("location", WORLD["county"]["seat"]).removesuffix(", Larkmoor")
        return user

    admin = member("admin", "admin@forum.test", NOW - dt.timedelta(days=1300), is_staff=True, is_superuser=True, rank=team)
    User.objects.filter(pk=admin.pk).update(password=password("admin1234"))
    living = [person for person in WORLD["people"] if not person["historic"]]
    members = [member("MarvelsGrantMan136", "marvels@larkmail.test", NOW - dt.timedelta(days=1150),
                      profile_fields={"location": f"{living[0]['home']}, Larkmoor", "bio": "I collect stories and hill walks."})]
    for person in living:
        joined = NOW - dt.timedelta(days=dice.number(740, 1140), minutes=dice.number(0, 1400))
        members.append(member(person["username"], person["email"], joined, profile_fields=profile(dice, person)))
    # The second of the people is the moderator.
    moderator = members[2]
    User.objects.filter(pk=moderator.pk).update(rank=team, title="Moderator")
    for user in (admin, moderator):
        user.refresh_from_db()
        user.roles.add(*Role.objects.filter(name__in=["Moderator", "Banning users", "Private threads moderator"]))
        user.update_acl_key()
        user.save(update_fields=["acl_key"])
    for user in members:
        for other in dice.some([other for other in members if other != user], dice.pick([0, 0, 1, 2, 3, 5])):
            user.follows.add(other)
            User.objects.filter(pk=user.pk).update(following=F("following") + 1)
            User.objects.filter(pk=other.pk).update(followers=F("followers") + 1)
    return [admin, moderator, *[user for user in members if user != moderator]]


def count(people):
    """Sets the values that Misago counts at run time: posts and threads of each member, and the last visit of each."""
    User = get_user_model()
    for user in people:
        posts = Post.objects.filter(poster=user).order_by("-posted_on")
        last = posts.values_list("posted_on", flat=True).first()
        seen = (last or user.joined_on) + dt.timedelta(minutes=4)
        User.objects.filter(pk=user.pk).update(posts=posts.count(), threads=Thread.objects.filter(starter=user).count(), last_posted_on=last, last_login=seen)
        Online.objects.filter(user=user).update(last_click=seen)
    build_active_posters_ranking()

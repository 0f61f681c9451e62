"""Accounts, groups and tokens."""

import datetime as dt

import bcrypt
from pagure.config import config
from pagure.lib import model

from seed.common import NOW, WORLD, Dice, digest, slug

# The salt is fixed and has the lowest cost: a log-in takes a millisecond, and two builds give the same hash.
SALT = b"$2b$04$arenadarenadarenadareu"
TOKENS = {"byteblaze": "BYTEBLAZE0TOKEN0FOR0EVERYTHING0THAT0A0TOKEN0MAY0DO00000000000001",
          "root": "ROOT0TOKEN0FOR0EVERYTHING0THAT0A0TOKEN0MAY0DO0000000000000000001"}


def accounts():
    """Returns every account: name, full name, e-mail address, password."""
    known = [("root", "Administrator", "root@forge.test", "root1234"), ("byteblaze", "Byte Blaze", "byteblaze@forge.test", "hello1234")]
    living = [person for person in WORLD["people"] if not person["historic"]]
    return known + [(person["username"], person["name"], person["email"], "Password.123") for person in living]


def create(session):
    """Creates the accounts and returns by name the data that rows and commits need."""
    dice, people = Dice("forge people"), {}
    for name, fullname, email, password in accounts():
        joined = dice.moment(dt.datetime(2020, 1, 6), dt.datetime(2021, 6, 1))
        user = model.User(user=name, fullname=fullname, default_email=email, created=joined, updated_on=joined,
                          password="$2$" + bcrypt.hashpw(password.encode(), SALT).decode())
        session.add(user)
        session.flush()
        session.add(model.UserEmail(user_id=user.id, email=email))
        people[name] = {"id": user.id, "name": name, "fullname": fullname, "email": email}
    # Pagure itself has just created these rows.
    for kind in (model.ACL, model.PagureGroupType):
        session.query(kind).update({kind.created: dt.datetime(2020, 1, 1)})
    acls = {acl.name: acl.id for acl in session.query(model.ACL)}
    for name, token in TOKENS.items():
        session.add(model.Token(id=token, user_id=people[name]["id"], description="Everything", created=dt.datetime(2023, 1, 9, 9),
                                expiration=dt.datetime(2099, 1, 1)))
        session.flush()
        session.add_all(model.TokenAcl(token_id=token, acl_id=acls[acl]) for acl in config["CROSS_PROJECT_ACLS"])
    return people


def create_groups(session, people):
    """Creates a group for each company that writes software; its projects are in its namespace."""
    groups = {}
    for company in (company for company in WORLD["companies"] if company["industry"] == "software"):
        makers = [project["maintainers"] for project in WORLD["projects"] if project["owner"] == company["name"]]
        names = sorted({name for three in makers for name in three})
        names += ["byteblaze"] if company["id"] == "tidepool-systems" else []
        group = model.PagureGroup(group_name=slug(company["name"]), display_name=company["name"], group_type="user", user_id=people[names[0]]["id"],
                                  description=f"{company['name']} of {company['town']}. {company['slogan']}.", created=NOW - dt.timedelta(days=900))
        session.add(group)
        session.flush()
        session.add_all(model.PagureUserGroup(user_id=people[name]["id"], group_id=group.id) for name in names)
        groups[company["name"]] = {"id": group.id, "name": group.group_name, "members": names}
    return groups


def key(*parts):
    return digest("forge", *parts, length=32)

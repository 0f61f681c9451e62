"""A thousand threads, five thousand posts, and their likes. Keys grow with time, as if people had typed everything here."""

import datetime as dt
from dataclasses import dataclass, field

from django.contrib.postgres.search import SearchVector
from django.db import connection
from django.test import RequestFactory
from misago.conf import settings
from misago.markup import common_flavour
from misago.threads.checksums import update_post_checksum
from misago.threads.models import Post, PostLike, Thread

from seed.common import NOW, Dice
from seed.forums import FORUMS
from seed.words import REPLIES, RULES, THANKS, TOPICS

THREADS, POSTS = 1000, 5000
DAYS, LONGEST = 700, 14
# No post is newer than this, so that a slightly wrong clock shows no post in the future.
LATEST = NOW - dt.timedelta(minutes=30)


@dataclass
class Draft:
    place: object
    title: str
    text: str
    replies: list
    pinned: bool = False
    closed: bool = False
    length: int = 0
    posts: list = field(default_factory=list)


@dataclass
class Said:
    draft: Draft
    poster: object
    when: dt.datetime
    text: str


def options(text):
    return [line for line in text.splitlines() if line]


def fill(sentence, words):
    said = sentence.format_map(words)
    return said[0].upper() + said[1:]


def drafts_of(dice, place, count):
    """Returns this many drafts for one forum, from its topics in turn, without repeating a title."""
    stacks = []
    for facts, titles, openings, asks, replies in TOPICS[place.name]:
        stack, seen = [], set()
        for words in facts:
            for title in options(titles):
                title = fill(title, words)
                if title not in seen:
                    seen.add(title)
                    text = dice.pick(["{} {}", "{}\n\n{}"]).format(fill(dice.pick(options(openings)), words), fill(dice.pick(options(asks)), words))
                    stack.append(Draft(place, title, text, [fill(reply, {**words, "home": "{home}"}) for reply in options(replies)],
                                       closed=dice.chance(1 / 60)))
        stacks.append(dice.shuffled(stack))
    drafts = []
    while len(drafts) < count:
        assert any(stacks), f"{place.name} has words for {len(drafts)} threads only"
        drafts += [stack.pop() for stack in stacks if stack]
    return drafts[:count]


def lengthen(dice, drafts, replies):
    """Distributes the replies: some threads get many, others few."""
    crowd = [draft for draft in drafts for _ in range(dice.pick([0, 1, 1, 2, 3, 3, 5, 8]))]
    while replies:
        draft = dice.pick(crowd)
        if draft.length < LONGEST:
            draft.length += 1
            replies -= 1


def between(dice, start, end):
    return start + dt.timedelta(seconds=int((end - start).total_seconds() * dice.real()))


def talk_about(dice, draft, start, crowd):
    """Writes the posts of one thread into its draft, from first to last."""
    starter = dice.pick(crowd)
    draft.posts = [Said(draft, starter, start, draft.text)]
    end = min(LATEST, start + dt.timedelta(hours=dice.pick([2, 9, 30, 100, 400])))
    own, common = dice.shuffled(draft.replies), dice.shuffled(options(REPLIES))
    thankful = dice.number(2, 6) if dice.chance(0.5) else None
    for number, when in enumerate(sorted(between(dice, start, end) for _ in range(draft.length))):
        before = draft.posts[-1].poster
        if number == thankful and before != starter:
            poster, sentence = starter, dice.pick(options(THANKS))
        else:
            poster = dice.pick([one for one in crowd if one not in (before, starter)])
            sentence = own.pop() if own and dice.chance(0.65) else common.pop()
            if dice.chance(0.2):
                sentence += " " + common.pop()
        draft.posts.append(Said(draft, poster, when, sentence.format(home=poster.home, to=before.username)))


def write(said, request):
    """Writes everything into the tables in the order of time, with the counters that Misago would maintain at run time."""
    threads = {}
    for one in said:
        if id(one.draft) not in threads:
            thread = Thread(category=one.draft.place, started_on=one.when, last_post_on=one.when, starter=one.poster, starter_name=one.poster.username,
                            starter_slug=one.poster.slug, is_closed=one.draft.closed, weight=Thread.WEIGHT_PINNED if one.draft.pinned else 0)
            thread.set_title(one.draft.title)
            threads[id(one.draft)] = thread
    Thread.objects.bulk_create(threads.values())
    posts, mentions = [], []
    for key, one in enumerate(said, start=1):
        thread = threads[id(one.draft)]
        parsed = common_flavour(request, one.poster, one.text)
        post = Post(pk=key, category=one.draft.place, thread=thread, poster=one.poster, poster_name=one.poster.username, original=one.text,
                    parsed=parsed["parsed_text"], posted_on=one.when, updated_on=one.when, hidden_on=one.when)
        update_post_checksum(post)
        post.set_search_document(None if thread.first_post_id else thread.title)
        if not thread.first_post_id:
            thread.first_post_id = key
        else:
            thread.replies += 1
        thread.last_post_id, thread.last_post_on = key, one.when
        thread.last_poster, thread.last_poster_name, thread.last_poster_slug = one.poster, one.poster.username, one.poster.slug
        posts.append(post)
        mentions += [Post.mentions.through(post=post, user_id=user) for user in sorted(parsed["mentions"])]
    Post.objects.bulk_create(posts, batch_size=1000)
    with connection.cursor() as cursor:
        cursor.execute("SELECT setval(pg_get_serial_sequence('misago_threads_post', 'id'), %s)", [len(posts)])
    Post.mentions.through.objects.bulk_create(mentions)
    Post.objects.update(search_vector=SearchVector("search_document", config=settings.MISAGO_SEARCH_CONFIG))
    Thread.objects.bulk_update(threads.values(), ["first_post", "last_post", "last_post_on", "last_poster", "last_poster_name",
                                                  "last_poster_slug", "replies"], batch_size=200)
    return posts


def like(dice, posts, crowd):
    likes = []
    for post in posts:
        likers = dice.some([user for user in crowd if user.pk != post.poster_id], dice.pick([0, 0, 0, 0, 0, 1, 1, 1, 2, 2, 4, 7]))
        moments = sorted(between(dice, post.posted_on, min(NOW, post.posted_on + dt.timedelta(days=3))) for _ in likers)
        likes += [PostLike(category=post.category, thread=post.thread, post=post, liker=user, liker_name=user.username, liker_slug=user.slug,
                           liked_on=when) for user, when in zip(likers, moments)]
        post.likes = len(likers)
        # The four latest likes, latest first.
        post.last_likes = [{"id": user.pk, "username": user.username} for user in reversed(likers[-4:])]
    likes.sort(key=lambda one: (one.liked_on, one.post_id, one.liker_id))
    PostLike.objects.bulk_create(likes, batch_size=1000)
    Post.objects.bulk_update(posts, ["likes", "last_likes"], batch_size=500)
    return len(likes)


def make(places, people):
    dice, request = Dice("talk"), RequestFactory().get("/")
    admin, members = people[0], people[1:]
    crowd = [user for user in members for _ in range(dice.pick([1, 1, 2, 3, 5, 8]))] + [members[1]] * 6
    about = {name: description for name, _, description in FORUMS}
    drafts = [draft for place in places for draft in drafts_of(dice, place, THREADS // len(places) - 1)]
    lengthen(dice, drafts, POSTS - THREADS)
    drafts = dice.shuffled(drafts)
    starts = sorted(LATEST - dt.timedelta(minutes=dice.number(20, DAYS * 1440)) for _ in drafts)
    for draft, start in zip(drafts, starts):
        talk_about(dice, draft, start, crowd)
    rules = [Draft(place, f"Welcome to {place.name}", RULES.format(forum=place.name, about=about[place.name]), [], pinned=True) for place in places]
    for hours, draft in enumerate(rules):
        draft.posts = [Said(draft, admin, NOW - dt.timedelta(days=DAYS + 90, hours=-hours), draft.text)]
    # Python's sort is stable: within a thread, posts of the same second keep their order.
    said = sorted((one for draft in [*rules, *drafts] for one in draft.posts), key=lambda one: one.when)
    posts = write(said, request)
    likes = like(dice, posts, members)
    for place in places:
        place.refresh_from_db()
        place.synchronize()
        place.save()
    print(f"seeded {len(places)} forums, {len(people)} members, {len(drafts) + len(rules)} threads, {len(posts)} posts, {likes} likes")

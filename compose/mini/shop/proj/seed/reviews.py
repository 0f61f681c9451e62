"""Creates about four hundred reviews; one in twelve waits for a moderator."""

import datetime as dt

from oscar.core.loading import get_model

from seed.common import NOW, Dice

TITLES = {1: ["Broke in a week", "Never again", "Not what I ordered"], 2: ["Disappointed", "Not worth it", "Could be better"],
          3: ["It is all right", "Good enough", "Does its job"], 4: ["Very good", "Nearly perfect", "Glad I bought it"],
          5: ["Love it", "Better than expected", "The best one yet", "A present that worked"]}
OPENINGS = {1: ["It broke after {n} days.", "The {noun} arrived damaged."], 2: ["I expected more from {maker}.", "Looks better on the picture."],
            3: ["A decent {noun} for the money.", "I have used it for {n} weeks and have no strong feelings."],
            4: ["I have used this {noun} for {n} weeks and I am happy with it.", "{maker} did a good job here."],
            5: ["My second {noun} by {maker}, and it is even better.", "After {n} weeks I would not want to be without it."]}
MIDDLES = ["Delivery to {town} took {n} days.", "The picture in the shop does it justice.", "My neighbour in {town} has the same one.",
           "You can tell that it is {material}.", "I wish there were more to choose from than {variant}.", "The instructions could be longer.", "It was packed without any plastic."]
ENDINGS = {1: ["I want my money back."], 2: ["I would not buy it again.", "Perhaps I was unlucky."], 3: ["Three stars seem fair."],
           4: ["I would buy it again.", "One star less because of the price."], 5: ["Highly recommended!", "Thank you, {maker}."]}


def text(dice, product, user, score):
    words = {"noun": product.noun.lower(), "maker": product.maker["name"], "n": dice.number(2, 14), "town": user.address["line4"],
             "variant": product.variant.lower(), "material": product.material}
    parts = [dice.pick(OPENINGS[score]), *dice.some(MIDDLES, dice.number(1, 2)), dice.pick(ENDINGS[score])]
    return " ".join(parts).format(**words)


def make(people, products):
    dice, Review, Vote = Dice("reviews"), get_model("reviews", "ProductReview"), get_model("reviews", "Vote")
    Product = get_model("catalogue", "Product")
    for product in products:
        liking = dice.number(0, 2)
        for user in dice.some(people, dice.pick([0, 0, 1, 1, 2, 2, 2, 3, 3, 5])):
            score = dice.pick([[1, 2, 2, 3, 3, 4], [2, 3, 4, 4, 5, 5], [3, 4, 5, 5, 5, 5]][liking])
            review = Review.objects.create(product=product, user=user, score=score, title=dice.pick(TITLES[score]),
                                           body=text(dice, product, user, score),
                                           status=Review.FOR_MODERATION if dice.chance(1 / 12) else Review.APPROVED)
            Review.objects.filter(pk=review.pk).update(date_created=NOW - dt.timedelta(minutes=dice.number(60, 700 * 1440), seconds=review.pk % 60))
            for voter in dice.some(people, dice.pick([0, 0, 0, 1, 2])):
                if voter != user:
                    Vote.objects.create(review=review, user=voter, delta=1 if dice.chance(0.8) else -1)
                    Vote.objects.filter(review=review, user=voter).update(date_created=NOW)
        product.update_rating()
        # The back office sorts by this date; if all were equal, the database would determine the order.
        Product.objects.filter(pk=product.pk).update(date_updated=product.date_created)

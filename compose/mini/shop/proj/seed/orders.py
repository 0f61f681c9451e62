"""Creates three hundred orders over two years with Oscar's own order creator."""

import datetime as dt

from oscar.apps.partner.strategy import Default
from oscar.core.loading import get_class, get_model

from seed.common import NOW, Dice

ORDERS, DAYS = 300, 730


def status_path(dice, age):
    """Returns the statuses of an order by its age: old ones are complete, and the last weeks show every status."""
    if age.days > 45:
        return dice.pick([["Processing", "Complete"]] * 8 + [["Cancelled"]] + [["Processing", "Cancelled"]])
    return dice.pick([[], [], ["Processing"], ["Processing"], ["On Hold"], ["Processing", "Complete"], ["Cancelled"]])


def stamp(order, basket, when):
    """Moves all rows of an order from the frozen time to its own day."""
    get_model("order", "Order").objects.filter(pk=order.pk).update(date_placed=when)
    get_model("basket", "Basket").objects.filter(pk=basket.pk).update(date_created=when - dt.timedelta(minutes=9), date_submitted=when)
    basket.lines.update(date_created=when - dt.timedelta(minutes=8), date_updated=when - dt.timedelta(minutes=8))
    for step, change in enumerate(order.status_changes.order_by("pk")):
        get_model("order", "OrderStatusChange").objects.filter(pk=change.pk).update(date_created=min(NOW, when + dt.timedelta(hours=7 + 41 * step)))


def make(people, products):
    dice = Dice("orders")
    Basket, ShippingAddress, BillingAddress = get_model("basket", "Basket"), get_model("order", "ShippingAddress"), get_model("order", "BillingAddress")
    OrderCreator, Free = get_class("order.utils", "OrderCreator"), get_class("shipping.methods", "Free")
    Total, Order = get_class("checkout.calculators", "OrderTotalCalculator"), get_model("order", "Order")
    StockRecord = get_model("partner", "StockRecord")
    stock = dict(StockRecord.objects.values_list("pk", "num_in_stock"))
    # Some products sell better than others, so that there is a best seller.
    shelf = [product for product in products for _ in range(dice.pick([1, 1, 1, 2, 2, 3, 6]))]
    moments = sorted(NOW - dt.timedelta(minutes=dice.number(90, DAYS * 1440), seconds=index % 60) for index in range(ORDERS))
    StockRecord.objects.update(num_in_stock=100000)
    for index, when in enumerate(moments):
        user = people[0] if index % 9 == 4 else dice.pick(people)
        basket = Basket.objects.create(owner=user)
        basket.strategy = Default()
        for product in dice.some(shelf, dice.number(1, 4)):
            basket.add_product(product, dice.pick([1, 1, 1, 1, 2, 2, 3, 5]))
        shipping = Free()
        charge = shipping.calculate(basket)
        order = OrderCreator().place_order(
            user=user, basket=basket, shipping_method=shipping, shipping_charge=charge, total=Total().calculate(basket, charge),
            order_number=str(100000 + basket.id), status="Pending",
            shipping_address=ShippingAddress.objects.create(**user.address), billing_address=BillingAddress.objects.create(**user.address))
        basket.submit()
        for status in status_path(dice, NOW - when):
            order.set_status(status)
        stamp(order, basket, when)
    # Stock was refilled continuously: the current stock is that of the catalogue.
    for key, number in stock.items():
        StockRecord.objects.filter(pk=key).update(num_in_stock=number, num_allocated=0)
    return Order.objects.count()

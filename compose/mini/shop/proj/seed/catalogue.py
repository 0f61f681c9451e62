"""Departments, categories, and ten products in each of the twenty leaf categories."""

import datetime as dt
from decimal import Decimal

from django.core.files.base import ContentFile
from django.utils.text import slugify
from oscar.core.loading import get_model

from seed.common import NOW, WORLD, Dice
from seed.pictures import COLOURS, draw
from seed.wares import WARES

ATTRIBUTES = [("brand", "Brand"), ("color", "Color"), ("size", "Size"), ("material", "Material"), ("made_in", "Made in"), ("warranty", "Warranty")]


def make_departments():
    Category, leaves = get_model("catalogue", "Category"), {}
    tops = {}
    for line in WORLD["product_lines"]:
        if line["department"] not in tops:
            tops[line["department"]] = Category.add_root(name=line["department"], description=f"<p>{line['department']} from the makers of Larkmoor.</p>")
        leaf = tops[line["department"]].add_child(name=line["category"], description=f"<p>{line['description'].capitalize()}.</p>")
        leaves[line["category"]] = leaf
    return leaves


def describe(dice, title, noun, maker, line, ware, material, variant):
    features = "".join(f"<li>{feature}</li>" for feature in dice.some(ware["features"], 4))
    opening = dice.pick([
        f"The {title} comes from the workshop of {maker['name']} in {maker['town']}.",
        f"{maker['name']} has made {line['category'].lower()} in {maker['town']} since {maker['founded']}, and this {noun.lower()} shows it.",
        f"A {noun.lower()} for every day, made by {maker['name']} of {maker['town']}."])
    use = dice.pick(ware["uses"])
    return (f"<p>{opening} {use}</p><ul>{features}</ul>"
            f"<p>{material[0].upper()}{material[1:]}, {variant.lower()}. “{maker['slogan']}”, as they say in {maker['town']}, Larkmoor.</p>")


def titles(dice, line, makers):
    """Yields ten products without repetition as (maker, noun, title): six of the specialist, four of its competitor."""
    ware = WARES[line["category"]]
    combinations = [(noun, quality) for noun in ware["nouns"] for quality in ware["qualities"]]
    for index, (noun, quality) in enumerate(dice.some(combinations, 10)):
        maker = makers[0] if index < 6 else makers[1]
        name = f"{maker['name']} {line['name']}" if index < 3 else maker["name"]
        yield maker, noun, f"{name} {quality} {noun}"


def make():
    dice = Dice("catalogue")
    Product, StockRecord = get_model("catalogue", "Product"), get_model("partner", "StockRecord")
    ProductImage, Attribute = get_model("catalogue", "ProductImage"), get_model("catalogue", "ProductAttribute")
    goods = get_model("catalogue", "ProductClass").objects.create(name="Goods", slug="goods", requires_shipping=True, track_stock=True)
    for code, name in ATTRIBUTES:
        Attribute.objects.create(product_class=goods, name=name, code=code, type="text")
    warehouse = get_model("partner", "Partner").objects.create(code="warehouse", name="One Stop Market Warehouse")
    companies = {company["name"]: company for company in WORLD["companies"]}
    leaves, products = make_departments(), []
    for line in WORLD["product_lines"]:
        ware = WARES[line["category"]]
        makers = [companies[name] for name in [line["maker"], *line["rivals"]]]
        for maker, noun, title in titles(dice, line, makers):
            number = len(products) + 1
            colour, material = dice.pick(list(COLOURS)), dice.pick(ware["materials"])
            variant = dice.pick(ware["sizes"] or [colour])
            title = f"{title}, {variant}"
            product = Product(structure="standalone", upc=f"OSM{number:05}", title=title, slug=slugify(title), product_class=goods,
                              description=describe(dice, title, noun, maker, line, ware, material, variant), is_public=True)
            product.attr.brand, product.attr.material = maker["name"], material
            if ware["sizes"]:
                product.attr.size = variant
            else:
                product.attr.color = variant
            product.attr.made_in = f"{maker['town']}, Larkmoor"
            product.attr.warranty = f"{line['warranty_years']} year" + ("s" if line["warranty_years"] > 1 else "")
            product.save()
            created = NOW - dt.timedelta(days=dice.number(5, 1000), minutes=dice.number(0, 1400), seconds=number % 60)
            Product.objects.filter(pk=product.pk).update(date_created=created, date_updated=created)
            product.date_created = created  # a later save must not bring the old one back
            get_model("catalogue", "ProductCategory").objects.create(product=product, category=leaves[line["category"]])
            low, high = ware["price"]
            price = Decimal(dice.number(low, high)) + dice.pick([Decimal("0.00"), Decimal("0.49"), Decimal("0.50"), Decimal("0.95"), Decimal("0.99")])
            StockRecord.objects.create(product=product, partner=warehouse, partner_sku=f"{maker['id'][:3].upper()}-{number:05}", price_currency="USD",
                                       price=price, num_in_stock=dice.pick([0, 3, 12, 40, 90, 180, 350, 500]), low_stock_threshold=5)
            image = ProductImage(product=product, display_order=0, caption=title)
            drawing = draw(Dice(f"picture of {product.upc}"), ware["pictures"][noun], COLOURS[colour])
            image.original.save(f"{product.upc}.jpg", ContentFile(drawing), save=True)
            product.maker, product.noun, product.variant, product.material = maker, noun, variant, material
            products.append(product)
    return products

"""Settings of the shop. Benchmark data on an internal network: nothing here is secret or hardened."""

import os

from oscar.defaults import *  # noqa: F403

BASE = "/srv/shop"
SEEDING = bool(os.environ.get("SEEDING"))
DEBUG = False
SECRET_KEY = "benchmark-only-not-secret-0123456789abcdefghijklmnopqrstuvwxyz"

# The gateway passes on the visitor's Host header unchanged, and tells whether the visitor used TLS.
ALLOWED_HOSTS = ["*"]
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
SECURE_CROSS_ORIGIN_OPENER_POLICY = None

# A stored login must outlive every benchmark.
SESSION_COOKIE_AGE = CSRF_COOKIE_AGE = 10 * 365 * 24 * 3600
OSCAR_BASKET_COOKIE_LIFETIME = SESSION_COOKIE_AGE
# Cookies do not depend on the port: sites on one host name would sign each other's visitors out.
COOKIE_PREFIX = os.environ.get("COOKIE_PREFIX", "")
SESSION_COOKIE_NAME = COOKIE_PREFIX + "sessionid"
CSRF_COOKIE_NAME = COOKIE_PREFIX + "csrftoken"
OSCAR_BASKET_COOKIE_OPEN = COOKIE_PREFIX + "oscar_open_basket"
OSCAR_RECENTLY_VIEWED_COOKIE_NAME = COOKIE_PREFIX + "oscar_history"
OSCAR_COOKIES_DELETE_ON_LOGOUT = [OSCAR_RECENTLY_VIEWED_COOKIE_NAME]
SESSION_SERIALIZER = "django.contrib.sessions.serializers.JSONSerializer"
PASSWORD_HASHERS = ["hashers.CheapHasher"]
AUTH_PASSWORD_VALIDATORS = []
AUTHENTICATION_BACKENDS = ("oscar.apps.customer.auth_backends.EmailBackend", "django.contrib.auth.backends.ModelBackend")
LOGIN_URL = "/customer/account/login/"
LOGIN_REDIRECT_URL = "/accounts/"

DATABASES = {"default": {
    "ENGINE": "django.db.backends.mysql", "NAME": "shop", "USER": "shop", "PASSWORD": "shop",
    "HOST": os.environ.get("DB_HOST", "/run/shop/mysqld.sock"),
    "OPTIONS": {"charset": "utf8mb4", "connect_timeout": 5},
    # Pooled connections are tested before use: a rewind restarts the database under a running shop.
    "ATOMIC_REQUESTS": True, "CONN_MAX_AGE": None, "CONN_HEALTH_CHECKS": True}}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
# Only database, media and index contain state. A process may cache the thumbnail of a picture, because it follows from
# the picture.
CACHES = {"default": {"BACKEND": "django.core.cache.backends.dummy.DummyCache"},
          "thumbnails": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "OPTIONS": {"MAX_ENTRIES": 2000}}}
THUMBNAIL_CACHE = "thumbnails"

USE_TZ, TIME_ZONE = True, "UTC"
USE_I18N, LANGUAGE_CODE, LANGUAGES = False, "en-us", (("en-us", "English"),)
SITE_ID = 1

MEDIA_ROOT, MEDIA_URL = "/data/media", "/media/"
STATIC_ROOT, STATIC_URL = None, "/static/"
STATICFILES_DIRS = [BASE + "/static"]
# Static files are served from the packages' own folders, which saves a second copy in the image.
WHITENOISE_USE_FINDERS = True
WHITENOISE_MAX_AGE = 24 * 3600

HAYSTACK_CONNECTIONS = {"default": {"ENGINE": "search_engine.Engine", "PATH": "/data/search"}}
# Whoosh cannot count by facet.
OSCAR_SEARCH_FACETS = {"fields": {}, "queries": {}}
HAYSTACK_SIGNAL_PROCESSOR = "haystack.signals." + ("BaseSignalProcessor" if SEEDING else "RealtimeSignalProcessor")

ROOT_URLCONF = "urls"
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.contrib.flatpages.middleware.FlatpageFallbackMiddleware",
    "django.middleware.common.CommonMiddleware",
    "oscar.apps.basket.middleware.BasketMiddleware",
]
INSTALLED_APPS = [
    "django.contrib.auth", "django.contrib.contenttypes", "django.contrib.sessions", "django.contrib.messages",
    "django.contrib.staticfiles", "django.contrib.sites", "django.contrib.flatpages", "django.contrib.sitemaps",
    "oscar.config.Shop", "oscar.apps.analytics.apps.AnalyticsConfig", "oscar.apps.checkout.apps.CheckoutConfig",
    "oscar.apps.address.apps.AddressConfig", "oscar.apps.shipping.apps.ShippingConfig",
    "oscar.apps.catalogue.apps.CatalogueConfig", "oscar.apps.catalogue.reviews.apps.CatalogueReviewsConfig",
    "oscar.apps.communication.apps.CommunicationConfig", "oscar.apps.partner.apps.PartnerConfig",
    "oscar.apps.basket.apps.BasketConfig", "oscar.apps.payment.apps.PaymentConfig", "oscar.apps.offer.apps.OfferConfig",
    "oscar.apps.order.apps.OrderConfig", "oscar.apps.customer.apps.CustomerConfig", "oscar.apps.search.apps.SearchConfig",
    "oscar.apps.voucher.apps.VoucherConfig", "oscar.apps.wishlists.apps.WishlistsConfig",
    "oscar.apps.dashboard.apps.DashboardConfig", "oscar.apps.dashboard.reports.apps.ReportsDashboardConfig",
    "oscar.apps.dashboard.users.apps.UsersDashboardConfig", "oscar.apps.dashboard.orders.apps.OrdersDashboardConfig",
    "oscar.apps.dashboard.catalogue.apps.CatalogueDashboardConfig", "oscar.apps.dashboard.offers.apps.OffersDashboardConfig",
    "oscar.apps.dashboard.partners.apps.PartnersDashboardConfig", "oscar.apps.dashboard.pages.apps.PagesDashboardConfig",
    "oscar.apps.dashboard.ranges.apps.RangesDashboardConfig", "oscar.apps.dashboard.reviews.apps.ReviewsDashboardConfig",
    "oscar.apps.dashboard.vouchers.apps.VouchersDashboardConfig",
    "oscar.apps.dashboard.communications.apps.CommunicationsDashboardConfig",
    "oscar.apps.dashboard.shipping.apps.ShippingDashboardConfig",
    "widget_tweaks", "haystack", "treebeard", "sorl.thumbnail", "django_tables2", "rest_framework", "oscarapi", "quiet.QuietConfig",
    "office.OfficeConfig",
]
TEMPLATES = [{
    "BACKEND": "django.template.backends.django.DjangoTemplates", "DIRS": [BASE + "/templates"], "APP_DIRS": True,
    "OPTIONS": {"context_processors": [
        "django.contrib.auth.context_processors.auth", "django.template.context_processors.request",
        "django.template.context_processors.static", "django.template.context_processors.media",
        "django.contrib.messages.context_processors.messages",
        "oscar.apps.search.context_processors.search_form",
        "oscar.apps.communication.notifications.context_processors.notifications",
        "oscar.apps.checkout.context_processors.checkout", "oscar.core.context_processors.metadata"]}}]
EMAIL_BACKEND = "django.core.mail.backends.dummy.EmailBackend"

OSCAR_SHOP_NAME, OSCAR_SHOP_TAGLINE, OSCAR_HOMEPAGE = "One Stop Market", "", "/"
OSCAR_DEFAULT_CURRENCY = "USD"
OSCAR_ALLOW_ANON_CHECKOUT = True
OSCAR_ALLOW_ANON_REVIEWS = False
OSCAR_MODERATE_REVIEWS = False
OSCAR_SEND_REGISTRATION_EMAIL = False
OSCAR_ORDERS_PER_PAGE = OSCAR_DASHBOARD_ITEMS_PER_PAGE = 20
OSCAR_PRODUCTS_PER_PAGE = 20
OSCAR_INITIAL_ORDER_STATUS = OSCAR_INITIAL_LINE_STATUS = "Pending"
OSCAR_ORDER_STATUS_PIPELINE = {
    "Pending": ("Processing", "On Hold", "Cancelled"), "On Hold": ("Pending", "Cancelled"),
    "Processing": ("Complete", "Cancelled"), "Complete": (), "Cancelled": ()}
OSCAR_LINE_STATUS_PIPELINE = {
    "Pending": ("Processing", "Cancelled"), "Processing": ("Shipped", "Cancelled"), "Shipped": (), "Cancelled": ()}
OSCAR_ORDER_STATUS_CASCADE = {"Processing": "Processing", "Cancelled": "Cancelled", "Complete": "Shipped"}

LOGGING = {"version": 1, "disable_existing_loggers": False,
           "handlers": {"stderr": {"class": "logging.StreamHandler"}}, "root": {"handlers": ["stderr"], "level": "WARNING"}}

"""Settings of the forum. Benchmark data on an internal network: nothing here is secret or hardened."""

import os

from misago.conf import defaults
from misago.settings import INSTALLED_APPS as MISAGO_APPS
from misago.settings import TEMPLATE_CONTEXT_PROCESSORS
from misago.settings import MISAGO_NOTIFICATIONS_RETRY_DELAY  # noqa: F401

BASE = "/srv/forum"
DEBUG = False
SECRET_KEY = "benchmark-only-not-secret-0123456789abcdefghijklmnopqrstuvwxyz"

# The gateway passes on the visitor's Host header unchanged, and tells whether the visitor used TLS.
ALLOWED_HOSTS = ["*"]
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
SECURE_CROSS_ORIGIN_OPENER_POLICY = None

# A stored login must outlive every benchmark. The cookies have names of their own: they do not depend on the port, and
# other sites run on the same host.
SESSION_COOKIE_NAME, CSRF_COOKIE_NAME = "forum_session", "forum_csrf"
SESSION_COOKIE_AGE = CSRF_COOKIE_AGE = 10 * 365 * 24 * 3600
PASSWORD_HASHERS = ["hashers.CheapHasher"]
AUTH_PASSWORD_VALIDATORS = []
AUTH_USER_MODEL = "misago_users.User"
AUTHENTICATION_BACKENDS = ["misago.users.authbackends.MisagoBackend"]
CSRF_FAILURE_VIEW = "misago.core.errorpages.csrf_failure"
LOGIN_URL, LOGOUT_URL, LOGIN_REDIRECT_URL = "misago:login", "misago:logout", "misago:index"

DATABASES = {"default": {
    "ENGINE": "django.db.backends.postgresql", "NAME": "forum", "USER": "forum", "PASSWORD": "forum",
    "HOST": os.environ.get("DB_HOST", "/run/forum"),
    "OPTIONS": {"connect_timeout": 5},
    # Pooled connections are tested before use: a rewind restarts the database under a running forum.
    "CONN_MAX_AGE": None, "CONN_HEALTH_CHECKS": True}}
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
CACHES = {"default": {"BACKEND": "versions.VersionedCache"}}

# Tasks run in the request that causes them: notifications exist as soon as the reply does, and no worker can fail.
CELERY_TASK_ALWAYS_EAGER = True
CELERY_BROKER_URL = "memory://"

USE_TZ, TIME_ZONE = True, "UTC"
USE_I18N, LANGUAGE_CODE, LANGUAGES = True, "en-us", (("en-us", "English"),)

MEDIA_ROOT, MEDIA_URL = "/data/media", "/media/"
STATIC_ROOT, STATIC_URL = None, "/static/"
STATICFILES_DIRS = [BASE + "/static"]
# Static files are served from the packages' own folders, which saves a second copy in the image.
WHITENOISE_USE_FINDERS = True
WHITENOISE_MAX_AGE = 24 * 3600

ROOT_URLCONF = "urls"
# Misago's list without its tracker of online members, which writes a row for every page that a member opens, and with
# one address for all visitors.
MIDDLEWARE = [
    "probe.first",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "quiet.one_address",
    "misago.core.middleware.FrontendContextMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "misago.cache.middleware.cache_versions_middleware",
    "misago.conf.middleware.dynamic_settings_middleware",
    "misago.socialauth.middleware.socialauth_providers_middleware",
    "misago.users.middleware.UserMiddleware",
    "misago.acl.middleware.user_acl_middleware",
    "misago.core.middleware.ExceptionHandlerMiddleware",
    "misago.admin.middleware.AdminAuthMiddleware",
    "misago.threads.middleware.UnreadThreadsCountMiddleware",
]
INSTALLED_PLUGINS = []
INSTALLED_APPS = ["quiet.QuietConfig", "fontawesomefree"] + [app for app in MISAGO_APPS if app not in ("debug_toolbar", "misago.faker")]
TEMPLATES = [{
    "BACKEND": "django.template.backends.django.DjangoTemplates", "DIRS": [BASE + "/templates"], "APP_DIRS": True,
    # The last processor collects the others' contributions for the scripts, so this one comes before it.
    "OPTIONS": {"context_processors": TEMPLATE_CONTEXT_PROCESSORS[:-1] + ["views.log_in_link"] + TEMPLATE_CONTEXT_PROCESSORS[-1:]}}]
REST_FRAMEWORK = {
    "DEFAULT_PERMISSION_CLASSES": ["misago.core.rest_permissions.IsAuthenticatedOrReadOnly"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "EXCEPTION_HANDLER": "misago.core.exceptionhandler.handle_api_exception",
    "UNAUTHENTICATED_USER": "misago.users.models.AnonymousUser", "URL_FORMAT_OVERRIDE": None}
EMAIL_BACKEND = "django.core.mail.backends.dummy.EmailBackend"
SOCIAL_AUTH_STRATEGY = "misago.socialauth.strategy.MisagoStrategy"

# An agent may post as fast as it can. Misago requires three seconds between two posts, and has no setting for that.
MISAGO_POSTING_MIDDLEWARES = [name for name in defaults.MISAGO_POSTING_MIDDLEWARES if "floodprotection" not in name]
# New accounts are accepted without validation: no rules for Gmail addresses and no external list of spammers.
MISAGO_NEW_REGISTRATIONS_VALIDATORS = []
# Words are stemmed, so that "museum" finds "museums".
MISAGO_SEARCH_CONFIG = "english"
MISAGO_AVATARS_SIZES = [400, 200, 100, 64]
MISAGO_DYNAMIC_AVATAR_DRAWER = "portraits.draw"
MISAGO_ADMIN_SESSION_EXPIRATION = 10 * 365 * 24 * 60
MISAGO_USER_DATA_DOWNLOADS_WORKING_DIR = "/tmp"
MISAGO_PROFILE_FIELDS = [
    {"name": "Personal", "fields": ["misago.users.profilefields.default." + field
                                    for field in ("RealNameField", "GenderField", "BioField", "LocationField")]},
    {"name": "Contact", "fields": ["misago.users.profilefields.default.WebsiteField"]}]

LOGGING = {"version": 1, "disable_existing_loggers": False,
           "handlers": {"stderr": {"class": "logging.StreamHandler"}}, "root": {"handlers": ["stderr"], "level": "WARNING"}}

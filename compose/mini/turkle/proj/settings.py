"""Settings of Turkle. Benchmark data on an internal network: nothing here is secret or hardened."""

DEBUG = False
SECRET_KEY = "benchmark-only-not-secret-0123456789abcdefghijklmnopqrstuvwxyz"

# The gateway passes on the visitor's Host header unchanged, and tells whether the visitor used TLS.
ALLOWED_HOSTS = ["*"]
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
SECURE_CROSS_ORIGIN_OPENER_POLICY = None
# Tasks are shown in a frame of the same site.
X_FRAME_OPTIONS = "SAMEORIGIN"

# A stored login must outlive every benchmark.
SESSION_COOKIE_AGE = CSRF_COOKIE_AGE = 10 * 365 * 24 * 3600
# Cookies do not depend on the port: under Django's own names, a login here would end the one in the shop.
SESSION_COOKIE_NAME, CSRF_COOKIE_NAME = "turkle_sessionid", "turkle_csrftoken"
PASSWORD_HASHERS = ["hashers.CheapHasher"]
AUTH_PASSWORD_VALIDATORS = []
AUTHENTICATION_BACKENDS = ("django.contrib.auth.backends.ModelBackend", "guardian.backends.ObjectPermissionBackend")
LOGIN_URL, LOGIN_REDIRECT_URL, LOGOUT_REDIRECT_URL = "login", "index", "index"

# Each request opens the file, so that it is not open when a rewind exchanges it.
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "/data/turkle.sqlite3", "OPTIONS": {"timeout": 20}}}
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"

USE_TZ, TIME_ZONE = True, "UTC"
USE_I18N, LANGUAGE_CODE = False, "en-us"

STATIC_ROOT, STATIC_URL = None, "/static/"
STATICFILES_DIRS = ["/srv/turkle/static"]
# Static files are served from the packages' own folders, which saves a second copy in the image.
WHITENOISE_USE_FINDERS = True
WHITENOISE_MAX_AGE = 24 * 3600

ROOT_URLCONF = "urls"
MIDDLEWARE = [
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
INSTALLED_APPS = [
    "django.contrib.auth", "django.contrib.contenttypes", "django.contrib.sessions", "django.contrib.messages",
    "django.contrib.staticfiles",
    # This application precedes the administration, whose password pages it replaces.
    "turkle", "django.contrib.admin",
    "rest_framework", "rest_framework.authtoken", "turkle.api", "guardian", "djaa_list_filter2",
]
TEMPLATES = [{
    "BACKEND": "django.template.backends.django.DjangoTemplates", "DIRS": ["/srv/turkle/templates"], "APP_DIRS": True,
    "OPTIONS": {"context_processors": [
        "django.contrib.auth.context_processors.auth", "django.template.context_processors.request",
        "django.template.context_processors.static", "django.contrib.messages.context_processors.messages",
        "turkle.utils.turkle_vars"]}}]
REST_FRAMEWORK = {
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAdminUser"],
    "DEFAULT_AUTHENTICATION_CLASSES": ["rest_framework.authentication.SessionAuthentication",
                                       "rest_framework.authentication.TokenAuthentication"]}
EMAIL_BACKEND = "django.core.mail.backends.dummy.EmailBackend"

TURKLE_SITE_NAME = "Turkle"
TURKLE_EMAIL_ENABLED = False
TURKLE_AUTO_ACCEPT_DEFAULT = True
# Turkle's own limit is 64 KiB; templates of TurkingBench have up to 300 KiB.
TURKLE_TEMPLATE_LIMIT = 512
DATA_UPLOAD_MAX_MEMORY_SIZE = FILE_UPLOAD_MAX_MEMORY_SIZE = 100 << 20

LOGGING = {"version": 1, "disable_existing_loggers": False,
           "handlers": {"stderr": {"class": "logging.StreamHandler"}}, "root": {"handlers": ["stderr"], "level": "WARNING"}}

from django.contrib.auth import get_user_model
from django.contrib.auth.views import LoginView
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from misago.categories.models import Category
from misago.core.utils import slugify
from misago.threads.models import Thread
from misago.users.forms.auth import AuthenticationForm


class LogInForm(AuthenticationForm):
    """Misago's form with the labels that the log-in code of WebArena and BrowserGym looks for."""

    def __init__(self, request=None, *args, **kwargs):
        super().__init__(request, *args, **kwargs)
        self.fields["username"].label = "Username"
        for field in self.fields.values():
            field.widget.attrs["class"] = "form-control"
            field.widget.attrs["required"] = True


class LogInView(LoginView):
    """A page for logging in. Misago has only a dialogue, which needs scripts and has no address."""

    template_name = "log_in.html"
    form_class = LogInForm
    redirect_authenticated_user = True


def log_in_link(request):
    """Adds a link to that page to the guests' menu, where an administrator may add links."""
    if request.include_frontend_context and not request.user.is_authenticated:
        link = {"title": "Log in", "url": reverse("log-in"), "className": "log-in-link", "targetBlank": False, "rel": ""}
        request.frontend_context["extraMenuItems"] = [*request.frontend_context.get("extraMenuItems", []), link]
    return {}


def forum(request, name):
    return redirect(get_object_or_404(Category.objects.all_categories(), slug=slugify(name)))


def thread(request, name, number):
    return redirect(get_object_or_404(Thread, pk=number))


def profile(request, name):
    return redirect(get_object_or_404(get_user_model(), slug=slugify(name)))


def account(request, name):
    if not request.user.is_authenticated:
        return redirect(reverse("log-in") + "?next=" + request.path)
    return redirect("misago:usercp-delete-account" if request.user.slug == slugify(name) else f"/user/{name}")

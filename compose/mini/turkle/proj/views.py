import turkle.views
from django.db.models import Count
from django.http import JsonResponse
from django.shortcuts import render
from turkle.models import Batch, Task


def index(request):
    """Shows Turkle's own list of batches. Visitors who may do none of them see the batches for signed-in workers."""
    if request.user.is_authenticated or Batch.access_permitted_for(request.user):
        return turkle.views.index(request)
    batches = Batch.objects.filter(active=True, published=True, project__active=True)
    batches = batches.annotate(tasks=Count("task")).select_related("project").order_by("-created_at", "-pk")
    return render(request, "welcome.html", {"batches": batches})


def get_tasks(request):
    """Returns the numbers of the tasks by the name of their batch, at the address that TurkingBench's evaluation uses."""
    tasks = {}
    for batch, task in Task.objects.order_by("id").values_list("batch__name", "id"):
        tasks.setdefault(batch, []).append(task)
    return JsonResponse(tasks)

from django.http import JsonResponse
from turkle.models import Task


def get_tasks(request):
    """The numbers of the tasks by the name of their batch, under the address where TurkingBench's evaluation asks for them."""
    tasks = {}
    for batch, task in Task.objects.order_by("id").values_list("batch__name", "id"):
        tasks.setdefault(batch, []).append(task)
    return JsonResponse(tasks)

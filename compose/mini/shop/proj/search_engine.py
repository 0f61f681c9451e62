"""Whoosh, with the products of a result page read by one query instead of one each."""

from haystack import connections
from haystack.backends.whoosh_backend import WhooshEngine, WhooshSearchBackend


class Backend(WhooshSearchBackend):
    def _process_results(self, *args, **kwargs):
        answer = super()._process_results(*args, **kwargs)
        found, index = answer["results"], connections[self.connection_alias].get_unified_index()
        for model in {result.model for result in found}:
            mine = [result for result in found if result.model is model]
            objects = index.get_index(model).read_queryset().in_bulk([int(result.pk) for result in mine])
            for result in mine:
                result._object = objects.get(int(result.pk))
        return answer


class Engine(WhooshEngine):
    backend = Backend

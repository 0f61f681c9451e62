"""A suite whose tests use the plug-in; tests/clients/python.rs runs it and compares the outcomes with the names."""

import subprocess
import urllib.request

import pytest
from arenad import Client, Episode

PAGE = "/cgi-bin/page"


def get(episode: Episode, path: str = PAGE) -> str:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({"http": episode.proxy_url}))
    with opener.open("http://toy.arena.test" + path) as answer:
        return answer.read().decode()


def kill_containers(client: Client, episode: Episode) -> None:
    (site,) = client.sites()
    (slot,) = [slot for slot in site["slots"] if slot["number"] == episode.sites[0]["slot"]]
    for container in slot["containers"]:
        subprocess.run(["docker", "kill", container["id"]], check=True, stdout=subprocess.DEVNULL)


def test_passes_with_its_own_writes(episode):
    get(episode, "/cgi-bin/write?mine")
    assert get(episode).endswith("mine\n")


def test_passes_without_those_of_another_test(episode):
    assert "mine" not in get(episode)


def test_fails_by_itself(episode):
    assert "mine" in get(episode)


def test_errors_because_the_site_died(arenad_client, episode):
    kill_containers(arenad_client, episode)
    get(episode)


def test_errors_although_nothing_was_asked_of_the_dead_site(arenad_client, episode):
    kill_containers(arenad_client, episode)
    assert any(event["state"] == "void" for event in episode.events())


@pytest.mark.arenad(task="toy.write", record="all", labels={"run": "7"})
class TestMarkers:
    def test_passes_with_the_arguments_of_the_class(self, episode):
        assert episode.labels == {"run": "7", "task": "toy.write"}
        assert (episode.reported["record"], episode.reported["owner"]) == ("all", "suite")
        get(episode, "/cgi-bin/write?pears")
        assert episode.evaluate()["reward"] == 1.0

    @pytest.mark.arenad(labels={"run": "8"})
    def test_passes_with_the_closest_argument(self, episode):
        assert episode.labels == {"run": "8", "task": "toy.write"}


@pytest.mark.arenad(site="toy")
def test_errors_because_the_marker_is_wrong(episode):
    pass


def test_passes_without_an_episode(arenad_client):
    assert arenad_client.version()["api"] == "v1"


def test_passes_when_it_ends_its_episode(episode):
    episode.end()

"""Runs NeMo Gym's own `simple_agent` against a daemon's environment service, with a scripted model.

Usage: nemo_gym_agent.py URL TASK CALL..., where each CALL is `TOOL {"argument": "value"}`, and the last one may be the
text of a message. Prints the agent's answer to `/run` and its `/aggregate_metrics`, as JSON.
"""

from __future__ import annotations

import json
import socket
import sys
import threading
import time
from typing import Any
from urllib.parse import urlsplit

import requests
import uvicorn
from fastapi import FastAPI
from nemo_gym import global_config
from nemo_gym.config_types import BaseServerConfig, ModelServerRef, ResourcesServerRef
from nemo_gym.server_utils import ServerClient
from omegaconf import OmegaConf
from responses_api_agents.simple_agent.app import SimpleAgent, SimpleAgentConfig

HOST = "127.0.0.1"


def scripted_model(script: list[str]) -> FastAPI:
    """A model server that says one entry of the script after the other."""
    app = FastAPI()
    left = list(enumerate(script))

    @app.post("/v1/responses")
    def responses(body: dict[str, Any]) -> dict[str, Any]:
        number, entry = left.pop(0)
        name, _, arguments = entry.partition(" ")
        if arguments.startswith("{"):
            item = {"type": "function_call", "call_id": f"call_{number}", "name": name, "arguments": arguments}
        else:
            text = {"type": "output_text", "text": entry, "annotations": []}
            item = {"type": "message", "id": f"msg_{number}", "role": "assistant", "status": "completed", "content": [text]}
        return {
            "id": f"resp_{number}", "created_at": 0, "model": "script", "object": "response", "output": [item],
            "parallel_tool_calls": False, "tool_choice": "auto", "tools": body.get("tools") or [],
        }  # fmt: skip

    return app


def serve(app: FastAPI, port: int) -> None:
    server = uvicorn.Server(uvicorn.Config(app, host=HOST, port=port, log_level="warning"))
    threading.Thread(target=server.run, daemon=True).start()
    while not server.started:
        time.sleep(0.01)


def free_port() -> int:
    with socket.create_server((HOST, 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def main(url: str, task: str, script: list[str]) -> None:
    service = urlsplit(url)
    model, agent = free_port(), free_port()

    def entry(kind: str, port: int | None) -> dict[str, Any]:
        return {kind: {"server": {"host": HOST, "port": port}}}

    config = OmegaConf.create(
        {
            "arenad": entry("resources_servers", service.port),
            "script": entry("responses_api_models", model),
            "agent": entry("responses_api_agents", agent),
        }
    )
    global_config._GLOBAL_CONFIG_DICT = config
    server = SimpleAgent(
        config=SimpleAgentConfig(
            name="agent", host=HOST, port=agent, entrypoint="app.py",
            resources_server=ResourcesServerRef(type="resources_servers", name="arenad"),
            model_server=ModelServerRef(type="responses_api_models", name="script"),
        ),
        server_client=ServerClient(head_server_config=BaseServerConfig(host=HOST, port=1), global_config_dict=config),
    )  # fmt: skip
    app = server.setup_webserver()
    server.setup_exception_middleware(app)
    serve(scripted_model(script), model)
    serve(app, agent)
    row = {
        "responses_create_params": {"input": [{"role": "user", "content": "Do the task"}]},
        "verifier_metadata": {"task": task},
    }
    run = requests.post(f"http://{HOST}:{agent}/run", json=row, timeout=120)
    result: dict[str, Any] = {"status": run.status_code, "run": run.json() if run.ok else run.text}
    if run.ok:
        rollouts = [run.json() | {"_ng_task_index": 0, "_ng_rollout_index": 0}]
        metrics = requests.post(f"http://{HOST}:{agent}/aggregate_metrics", json={"verify_responses": rollouts}, timeout=60)
        metrics.raise_for_status()
        result["metrics"] = metrics.json()
    print(json.dumps(result))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])

"""Trains a tiny model for one step with `examples/openenv_trainer.py` and TRL itself, and with scripted rollouts.

Usage: rollouts.py FOLDER TASK SCRIPT, where SCRIPT is a JSON list with the turns of each member of the group. A turn is a
tool call as `["name", {"argument": "value"}]`, a message, or `{"wait": NAME}`, which writes the id of the member's episode
to the file NAME in FOLDER, waits until that file is removed, and then calls `scroll`. OPENENV_URL names the service.
Prints rewards, advantages and the messages of each member as JSON.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import time
from pathlib import Path
from typing import Any

import torch
import trl
from datasets import Dataset
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM
from trl import GRPOConfig, GRPOTrainer

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "openenv_trainer.py"
# The special tokens of Qwen 3, for whose template TRL knows how calls of tools are written.
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
MARKS = ["<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>"]
PATIENCE = 120.0


def example() -> Any:
    spec = importlib.util.spec_from_file_location("openenv_trainer", EXAMPLE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def tokenizer() -> PreTrainedTokenizerFast:
    """Returns a tokenizer with a token for each byte, and the chat template of Qwen 3."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    bytewise = Tokenizer(models.BPE(vocab={letter: number for number, letter in enumerate(letters)}, merges=[]))
    bytewise.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bytewise.decoder = decoders.ByteLevel()
    bytewise.add_special_tokens([AddedToken(token, special=True) for token in SPECIAL])
    bytewise.add_tokens([AddedToken(token, special=False, normalized=False) for token in MARKS])
    made = PreTrainedTokenizerFast(tokenizer_object=bytewise, eos_token="<|im_end|>", pad_token="<|endoftext|>")
    made.chat_template = (Path(trl.__file__).parent / "chat_templates" / "qwen3.jinja").read_text()
    return made


def tiny(vocabulary: int) -> Qwen3ForCausalLM:
    torch.manual_seed(0)
    return Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=vocabulary, hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2,
            num_key_value_heads=1, head_dim=8, max_position_embeddings=1 << 17, tie_word_embeddings=True,
        )
    )  # fmt: skip


class ScriptedTrainer(GRPOTrainer):
    """A trainer whose model says what the script has. Everything else is TRL's own."""

    folder: Path
    script: list[list[Any]]
    seen: dict[str, Any]

    def _generate_single_turn(self, prompt_ids: list[list[int]], *_: Any, **__: Any) -> tuple[list[list[int]], None]:
        """Returns the tokens of the next turns. The first turn names its member, by which later ones are told apart."""
        said = []
        for place, ids in enumerate(prompt_ids):
            text = self._tokenizer.decode(ids)
            turns = text.count("<|im_start|>assistant") - 1
            member = place if turns == 0 else int(text.rpartition("member ")[2][0])
            turn = self.script[member][turns]
            if isinstance(turn, dict):
                self._wait(member, turn["wait"])
                turn = ["scroll", {"direction": "down"}]
            if isinstance(turn, list):
                call = json.dumps({"name": turn[0], "arguments": turn[1]})
                turn = f"member {member}\n<tool_call>\n{call}\n</tool_call>"
            said.append(self._tokenizer.encode(f"{turn}<|im_end|>", add_special_tokens=False))
        return said, None

    def _wait(self, member: int, name: str) -> None:
        file = self.folder / name
        draft = file.with_suffix(".draft")
        draft.write_text(self.environments[member]._client.state()["arenad_episode"])
        draft.rename(file)
        deadline = time.monotonic() + PATIENCE
        while file.exists():
            assert time.monotonic() < deadline, f"{file} has not been removed"
            time.sleep(0.05)

    def _calculate_rewards(self, inputs: Any, prompts: Any, completions: Any, ids: Any) -> torch.Tensor:
        rewards: torch.Tensor = super()._calculate_rewards(inputs, prompts, completions, ids)
        self.seen["rewards"] = [None if reward != reward else reward for reward in rewards[:, 0].tolist()]
        self.seen["completions"] = completions
        return rewards

    def _generate_and_score_completions(self, inputs: Any) -> dict[str, Any]:
        scored: dict[str, Any] = super()._generate_and_score_completions(inputs)
        self.seen["advantages"] = scored["advantages"].tolist()
        return scored


def main(folder: Path, task: str, script: list[list[Any]]) -> None:
    known, words = example(), tokenizer()
    trainer = ScriptedTrainer(
        model=tiny(len(words)),
        processing_class=words,
        train_dataset=Dataset.from_list([{"prompt": [{"role": "user", "content": known.PROMPT}], "task": task}]),
        environment_factory=known.Site,
        args=GRPOConfig(
            output_dir=str(folder / "trained"), num_generations=len(script), per_device_train_batch_size=len(script),
            max_completion_length=1 << 15, max_steps=1, report_to="none", save_strategy="no", use_cpu=True, bf16=False,
        ),
    )  # fmt: skip
    trainer.folder, trainer.script, trainer.seen = folder, script, {}
    trainer.train()
    print(json.dumps(trainer.seen, default=str))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3]))

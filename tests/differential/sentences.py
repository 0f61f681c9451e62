"""Lays NLTK's English sentence model where NLTK 3.8.1 and 3.10.4 look for it. Usage: sentences.py FOLDER"""

import sys
import zipfile
from pathlib import Path

MODEL = "llama_index/core/_static/nltk_cache/tokenizers/punkt/PY3/english.pickle"


def main():
    folder = Path(sys.argv[1])
    wheel = next(folder.glob("llama_index_core-*.whl"))
    old = folder / "nltk_data/tokenizers/punkt/PY3/english.pickle"
    old.parent.mkdir(parents=True, exist_ok=True)
    old.write_bytes(zipfile.ZipFile(wheel).read(MODEL))
    wheel.unlink()
    # NLTK 3.10.4 needs the same model as tables.
    sys.path.insert(0, str(folder / "nltk-3.8.1"))
    import pickle

    with old.open("rb") as file:
        model = pickle.load(file)._params
    new = folder / "nltk_data/tokenizers/punkt_tab/english"
    new.mkdir(parents=True, exist_ok=True)
    write = lambda name, lines: (new / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    write("collocations.tab", sorted("\t".join(pair) for pair in model.collocations))
    write("sent_starters.txt", sorted(model.sent_starters))
    write("abbrev_types.txt", sorted(model.abbrev_types))
    write("ortho_context.tab", sorted(f"{word}\t{flags}" for word, flags in model.ortho_context.items()))


if __name__ == "__main__":
    main()

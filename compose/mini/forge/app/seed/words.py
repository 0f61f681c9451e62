"""The texts of issues and requests."""

MODULES = {  # the modules of each project
    "tidegauge": "gauge level station publisher calibration", "larkmap": "tile marker viewport legend route", "loomctl": "loom thread pattern shuttle session",
    "saltpan": "pan brine weather plan harvest", "clockwork": "schedule zone job calendar journal", "ferryboard": "departure terminal delay board sailing",
    "gridlark": "demand forecast meter season holiday", "papermill": "page font margin chapter cover", "beacon": "lamp dimmer sensor colour timer",
    "heronry": "bird photo count nest camera", "quarry": "column block index query segment", "switchyard": "engine roster track shift depot",
    "mooring": "link ping buffer socket retry", "orchardist": "tree graft pest yield rootstock", "skyplate": "star plate exposure catalogue magnitude",
    "courier-cms": "article edition author layout archive", "ropewalk": "rope leaf cursor edit line", "kilnlog": "kiln probe firing cone alarm",
    "penny-bank": "ledger account entry balance statement", "windward": "boat race buoy wind leaderboard"}

LABELS = {"bug": ("Something does not work", "#d9534f"), "feature": ("Something new", "#5cb85c"), "documentation": ("Words, not code", "#5bc0de"),
          "performance": ("Too slow or too large", "#f0ad4e"), "security": ("Handle with care", "#6f42c1"), "good first issue": ("A good start for newcomers", "#20c997")}

ISSUES = [  # label, title, description
    ("bug", "{Module} is empty after a restart",
     "1. Start {project} {version}\n2. Stop it and start it again\n3. Look at the {module}\n\nExpected: the last known values. Seen: nothing until the next one arrives."),
    ("bug", "`{function}` fails on an empty list", "It divides by the number of values without looking. A guard at the beginning would do.\n\n```\n{function}([])\n```"),
    ("bug", "{Module} of {town} is missing", "All other towns are there, {town} is not. It was there in version 0.9, I think."),
    ("bug", "Last value of the {module} is dropped", "With ten values I see nine. Looks like an off-by-one in the {module}."),
    ("bug", "Wrong time of day for the {module} since the clocks changed", "Since the end of March everything is one hour late. The machine itself is on UTC."),
    ("bug", "{project} {version} does not start without a configuration file", "It says `no such file` and exits with 1. The README promises defaults."),
    ("bug", "{Module}: numbers are cut off on narrow screens", "On my phone the last two digits are outside of the frame. Reported by a visitor of the {landmark}."),
    ("feature", "Let the {module} write CSV", "The {museum} would like to read our numbers with a spreadsheet. One line per value, with a header, would be enough."),
    ("feature", "Dry run for the {module}", "I would like to see what would be done without doing it: `{project} --dry-run`."),
    ("feature", "Several {module}s at once", "Here in {town} we have three of them and run three copies of {project}, which is a waste."),
    ("feature", "Show progress while the {module} is read", "With the data of a whole year nothing happens on the screen for a minute."),
    ("feature", "Dark colours", "For those who look at the {module} at night, please."),
    ("documentation", "Explain the {module}", "What is a {module} in {project}, and when do I need one? The README mentions it once."),
    ("documentation", "Example for `{function}` is out of date", "It still has the parameters of last year."),
    ("documentation", "Say which versions get fixes", "We run {version} in {town} and do not know whether to upgrade."),
    ("documentation", "Typo in the configuration chapter", "\"recieve\" should be \"receive\", twice."),
    ("performance", "`{function}` is slow for more than 10,000 values", "Measured on a small machine: 10,000 values 0.4 s, 100,000 values 41 s. It should not be quadratic."),
    ("performance", "Memory grows while the {module} is watched", "After a week it is at 2 GB. A restart helps."),
    ("performance", "Cache the result of `{function}`", "It is asked for on every request and changes once a minute."),
    ("performance", "Starting takes eleven seconds", "Most of it is spent reading the {module}, which could be done later."),
    ("security", "Token appears in the log of the {module}", "At debug level the whole header is written, token included."),
    ("security", "Check the length of names in the {module}", "A name of 70,000 characters is accepted and then truncated somewhere else."),
    ("security", "Set a time limit for requests to the {module}", "One slow client is enough to hold all workers."),
    ("security", "Document how to report a vulnerability", "There is no SECURITY file."),
    ("good first issue", "Translate the messages of the {module}", "A list of some twenty short sentences, in one file."),
    ("good first issue", "Add a test for `{function}`", "It has none. The empty list and one negative value would be good cases."),
    ("good first issue", "Remove the unused setting `{module}_compat`", "Nobody reads it any more since {version}."),
    ("good first issue", "Sort the {module} list by name", "It comes in the order of the files on disk now."),
]

COMMENTS = ["I can reproduce this with {version}.", "Works for me on {version}, which system are you on?", "Same here in {town}.",
            "Good idea. A request is welcome, @{someone} can help with the {module}.", "I will look into it this week.", "Could you attach the log, please?",
            "Here it is:\n\n```\nerror: {module}: unexpected end of input\n```", "This is related to what @{someone} found in the {module} last month.",
            "Let us keep this for the next milestone.", "Thank you for the report!", "+1, the people at the {museum} ask for it every month.",
            "I have a branch that does this, needs a test.", "Any news?", "Not a bug in {project} itself, but we can be kinder here."]

CLOSING = {"Fixed": "Fixed in the last release.", "Invalid": "This is how it is meant to work, see the README.", "Duplicate": "We have this one already."}

REVIEWS = ["Looks good, thank you.", "Could you add a line to the change log?", "Please rebase, the {module} has changed in the meantime.",
           "Nice and small. I would merge it.", "A test for the empty list would be good.", "Done.", "Does this work for {town} too?", "Yes, tried it this morning.",
           "I am not sure about the name, but fine.", "@{someone}, can you have a look?"]
REJECTIONS = ["Solved differently on main, closing. Thank you all the same!", "We would rather not maintain this.", "No answer for two months, closing."]

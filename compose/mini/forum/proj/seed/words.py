"""The texts of the forum: topics per forum, each with its subject and its titles, openings, questions and answers.

Each line is one choice. The words in braces come from the fact; every reply must make sense below every title of its
topic.
"""

from seed.facts import companies, events, festivals, landmarks, lines, only, parks, pois, projects, rivers, streets, teams, things, towns, visits, works

PLACES = """Is {place} in {town} still good?
{place}, {town}: what happened?
Quiet table at {place} in {town}?
Lunch at {place} in {town}
""", """I have not been to {place} on {address} since last summer.
A colleague keeps recommending {place} on {address}, {town}.
Walked past {place} on {address} yesterday and the windows were steamed up.
""", """Is it worth the wait these days?
Does anybody know whether they take bookings?
What should I order?
""", """It opens at {opens} and closes at {closes}. Go at {opens}.
I would give it {stars} stars, and I am told that this is what everybody gives it.
Ring them on {phone}, they always pick up.
The soup is the reason to go to {address}.
Too loud for me after six.
Best {kind} in {town}, and it is not close.
They changed the menu in spring. I miss the old one.
"""

STREETS = """Road works on {street} in {town} again
What is being built on {street}, {town}?
Flat to let near {street}, {town}: fair price?
Lost on {street} in {town}: grey cat with a white paw
Who remembers the old shops on {street}, {town}?
Parking on {street} in {town}
""", """I live just off {street} and have a question for the neighbours.
Yesterday afternoon on {street}, between the corner and the post box.
Wrote to {mayor}, our mayor, about {street} and got a very polite letter back.
""", """Does anybody know more?
Am I the only one who noticed?
Who do I ask about this?
""", """Saw it too. Ask at the town hall, second floor, the patient one.
{mayor} promised to look into it before the summer.
That end of {street} has always been like this.
My daughter walks along {street} to {school} every morning, so I care.
Put a note up in the library as well.
Try the baker, she knows everybody on {street}.
"""

TOPICS = {
"AskLarkmoor": [
(towns(), """Moving to {town} in autumn: what should I know?
What do you do in {town} on a rainy Sunday?
Is {town} really called {nickname}, or is that for visitors?
Best coffee in {town}?
Where in {town} do you take your parents?
Dentist in {town} who does not lecture?
What does everybody in {town} get wrong about their own town?
""", """I have only ever passed through {town} on the train.
With us, {town} would have {population} people and four more.
I know {town} for {known_for} and for nothing else.
""", """What would you tell a friend?
Serious and less serious answers welcome.
Honest opinions please, I will not tell {mayor}.
""", """Start at {cafe} and ask whoever sits by the window.
See {landmark} once, then never again.
People have said {nickname} since my grandmother's time.
The {museum} is better than it sounds.
Stay at {hotel} for a week before you sign anything.
Everything you need is on {street}.
Founded in {founded}, and some of the plumbing is original.
"""),
],
"larkmoor": [
(festivals(), """{festival} this {month}: who is coming to {town}?
Volunteers wanted for {festival} in {town}
{festival} was too crowded last year
How old is {festival}?
""", """{festival} in {town} comes closer.
They say {visitors} people came to {town} last time.
I have missed {festival} three years in a row.
""", """Who has a bed to spare that week?
Is there a train back after midnight?
What must one not miss?
""", """It has been held every {month} since {since}, wars excepted.
Take the early train and bring a coat.
{visitors} visitors and four toilets. Do the sum.
I am helping at the gate in {town}, say hello.
The last evening is the best one.
"""),
(companies(), """{company} is hiring in {town}
What is it like to work for {company}?
{company}: good neighbour or not?
""", """{company} has been part of {town} since {founded}.
My brother-in-law has had an offer from {company}.
I read in the Courier that {chief} wants {company} to grow.
""", """Any experiences?
Would you take your children there on an open day?
Is the canteen as good as they say?
""", """{employees} people work there, so somebody here must know.
{chief} answers letters. I have two.
Solid pay, dull offices.
In {industry} you will not find better on this island.
They sponsor the brass band, which settles it for me.
"""),
(events(), """{year} and today: the {event}
Plaque for the {event} unveiled in {town}
""", """They have finally put up a plaque in {town}. {summary}.
My grandmother used to tell of the {event}.
""", """Whose family has a story about it?
Should there be a day off for it?
""", """{summary}. We had to learn that by heart.
{witness} is on the plaque, I believe.
The date on it is right: {date}.
More visitors for {town}, then.
"""),
],
"PortElsing": [
(only("Port Elsing", streets()), *STREETS),
(only("Port Elsing", pois("cafe", "restaurant", "hotel", "supermarket", "pharmacy")), *PLACES),
],
"HarrowgateMills": [
(only("Harrowgate Mills", streets()), *STREETS),
(only("Harrowgate Mills", pois("cafe", "restaurant", "hotel", "supermarket", "pharmacy")), *PLACES),
],
"books": [
(works("novel", "poem", "history"), """Just finished {work} by {creator}
Is {work} overrated?
Reading group: {work} in {town}
Which edition of {work} should I buy?
{work}: did I get the ending right?
""", """I read {work} in two evenings and have been quiet since.
My aunt gave me {work} by {creator} with a note: "now you are old enough".
Everybody I know was made to read {work} at school.
""", """What should I read next?
Tell me what I missed.
Does anybody want to swap copies?
""", """{creator} wrote it in {year}, and it shows in the best way.
The middle drags, the last thirty pages do not.
I prefer the other {kind} by the same hand.
We read it aloud in {town}, a chapter a week.
The library has three copies, two of them with the last page.
Bramble Press still prints it, on good paper.
"""),
],
"movies": [
(works("film"), """{work} ({year}): worth a second look
Where was {work} filmed?
{work} on the big screen in {town}
Who else fell asleep in {work}?
The ending of {work}, please explain
""", """Saw {work} again last night.
{creator} made {work} with almost no money.
""", """What do you make of it?
Is there a version with the missing reel?
""", """{creator} said in the Courier that {year} was the coldest winter of the shoot.
The quarry scenes are real, the rain is not.
It gets better every time.
I was an extra. You can see my hat.
"""),
(events(), """Somebody should film the {event}
Film idea: {town}, {year}
""", """{summary}. How is this not a film yet?
I cannot stop thinking about {year} in {town}.
""", """Who should play {witness}?
Would you watch it?
""", """Only if it is shot in {town} and not in a studio.
In black and white, please.
There is a short one at the archive, eleven minutes.
Give it to whoever made The Quarrymen.
"""),
],
"music": [
(works("symphony"), """{work}: which recording?
First time hearing {work} live
Playing {work} with an amateur orchestra in {town}
""", """{creator} finished {work} in {year} and never heard it played.
The county orchestra gives {work} in {town} next month.
""", """Which movement is your favourite?
Is there a piano version?
""", """The slow movement. Always the slow movement.
Radio Larkmoor plays it on Sundays.
The horns were sharp last time.
{creator} would have liked your question.
"""),
(festivals(), """Who plays at {festival} this year?
Busking at {festival} in {town}
Fiddle session after {festival}?
""", """I want to hear more than the brass band at {festival}.
Last {month} the best music in {town} was in the street.
""", """Do you need a permit?
Any names yet?
""", """Ask at the town hall in {town}, it costs nothing.
The harbour band, as every year since {since}.
Bring a tarpaulin.
"""),
(towns(), """Fiddle teacher in {town}?
Second-hand piano, collection in {town}
""", """Looking around {town} for somebody patient.
It has been standing in our hall since we moved to {town}.
""", """Any hints?
What would be a fair price?
""", """Put a note up at {cafe}.
My neighbour on {street} teaches children and brave adults.
Fair is what somebody pays.
"""),
],
"gaming": [
(things("""Long Winter, chess, the railway game, Salt and Tide, Nine Men's Morris, Lighthouse Keepers, The Thirteenth Stroke, Weavers of the Lark,
Ferry Tycoon, Eel Race, Clockmaker's Apprentice, Harbour Masters""".replace("\n", " ")), """Rules question about {thing}
{Thing} with two players?
Looking for players: {thing} in {town}
Is {thing} too hard for a nine-year-old?
House rules for {thing}
{Thing} or something else for a long evening?
""", """We had {thing} on the table last night and fell out over it.
Paper Crane Games made a new edition of {thing}, and I am torn.
My copy of {thing} lacks a page.
""", """How do you play it?
What am I doing wrong?
Who is in?
""", """Read page four again, slowly.
With two it is a puzzle, with four it is a riot.
We meet in {town} every second Thursday.
Never let the same person keep the bank.
The first edition was better and the box was smaller.
The shop has it, I looked this morning.
"""),
],
"technology": [
(lines("Electronics", "Home & Kitchen"), """{maker} {line}: worth the money?
{line} against {rival}: which would you buy?
My {line} stopped after the update
Is the {line} overpriced?
Do {category} by {maker} work with other brands?
""", """I have had the {line} by {maker} for three weeks.
The shop sends {category} by both {maker} and {rival}, and I cannot decide.
""", """Would you buy it again?
Is there a trick?
""", """{maker} gives {warranty} of warranty, use it.
Mine is from {launched} and still works.
{rival} is cheaper, and you can hear why.
They repair them in {town} while you wait.
Hold both buttons for ten seconds.
"""),
(companies("software", "electricity", "broadcasting"), """{company} had an outage this morning
What does {company} actually do?
{company} opens its offices in {town} to visitors
""", """{company} has grown to {employees} people.
I met somebody from {company} on the ferry.
""", """Did anybody else notice?
Anything public about it?
""", """{chief} wrote an honest note about it.
It was a cable, it is always a cable.
Founded in {founded}, which is old for {industry}.
The tour is good, the coffee is not.
"""),
],
"programming": [
(projects(), """{project} {version} is out
Bug in {project} or in my head?
How do I build {project} from source?
Why is {project} written in {language}?
Good first issue in {project} for a beginner?
{project}: anybody running it for real?
""", """I use {project} every day ({does}).
I have been reading the code of {project} on the train.
At work we are thinking about {project} by {owner}.
""", """What would you do?
Is there a better way?
Pointers welcome.
""", """Open an issue in the repository, {maintainer} answers quickly.
It is {licence}, so you may do what you like within reason.
{language} was the right choice for this.
{stars} stars and one maintainer, the usual story.
Read the tests, they are the documentation.
Version {version} fixed that for me.
"""),
],
"DIY": [
(things("""a leaking slate roof, a squeaking stair, a sash window that sticks, a wobbly table, a cold cellar, an old loom as a bookshelf, a garden gate,
a bicycle trailer, a rain barrel, a dry stone wall, a clock that loses time, damp behind the wardrobe, a workbench""".replace("\n", " ")), """How to deal with {thing}?
{Thing}: my three weekends
Do I need a permit for {thing}?
Tools for {thing}?
{Thing}: what did I forget?
""", """We bought a house in {town}, and it came with {thing}.
Pictures would only make you sad, so here are words: {thing}.
It was meant to be an afternoon.
""", """Where would you start?
What do I buy, and what do I borrow?
When do I call somebody who knows?
""", """Measure twice. Then have tea. Then measure again.
There is a man in {town} who does nothing else.
Linseed oil, patience, and an old shirt.
Do not use the cheap screws.
Ours held for nine years.
Take a photograph before you take it apart.
"""),
],
"space": [
(things("""Comet Penrose, the Perseids, Saturn's rings, the Orion nebula, a lunar eclipse, the northern lights, Jupiter's moons, the Pleiades, Mars,
the space station, a variable star, the Andromeda galaxy""".replace("\n", " ")), """Saw {thing} from {park} last night
Where to watch {thing} in the county?
First photograph of {thing}
Is a small telescope enough for {thing}?
When is the best time for {thing}?
""", """The sky over {park} was clear for once.
Our astronomy evening at the Dunmore observatory turned to {thing}.
I have tried to find {thing} with binoculars for a month.
""", """How did you do it?
What should I look for?
Anybody coming along next time?
""", """Go up to Upper Dunmore, away from the harbour lights.
Let your eyes get used to the dark for half an hour.
Binoculars on a tripod are half a telescope.
skyplate measures such plates, if you like to compute.
Clouds over {town}, as always when it matters.
The observatory is open on Fridays.
"""),
],
"history": [
(events(), """What really happened at the {event}?
Sources on the {event} ({year})
Did your family live through the {event}?
{town} in {year}
""", """{summary}. So much for the plaque.
I am writing a paper about {town} and got stuck in {year}.
The Courier of that week is missing from the archive.
""", """Where can I read more?
Who has letters or pictures?
""", """{witness} left a diary, ask at the library.
It was on {date}, not a week later as people say.
A History of Larkmoor has four pages on it.
My great-grandfather was there, or said so.
There is a room about it in the museum in {town}.
"""),
(landmarks(), """Who built the {landmark}?
How tall is the {landmark}?
""", """The sign at the {landmark} says {built}, the guide says otherwise.
I pass the {landmark} every day and know nothing about it.
""", """Who is right?
Is there a book about it?
""", """{built} is right for the walls, the roof is younger.
{height} metres, measured with string by my class.
It stands at {address}, which used to be a field.
A proper {kind}, and it leaks like one.
"""),
],
"museums": [
(visits(), """{museum}: when is it open?
Is the {museum} worth a detour?
With children to the {museum}?
How much is the entry to the {museum}?
Favourite object in the {museum}?
""", """We are in {town} for a day and have two hours.
The {museum} has {objects} objects, and I have seen nine.
I did not know that there is so much to say about {subject}.
""", """What should we look at first?
Any advice?
Is there a cafe?
""", """It is closed on {closed}s. I have stood before that door.
Entry is {fee}, last time I looked.
You find it at {address}, {town}.
Open since {opened}, and so is the dust.
The room about {subject} on the first floor.
The guard knows more than the labels.
"""),
],
"food": [
(list(pois("cafe", "restaurant")), *PLACES),
],
"sports": [
(teams(), """{team}: how was the match?
Season tickets for the {team}
{captain} as captain of the {team}: right choice?
Youth training with the {team} in {town}
Are the {team} going up this year?
Away day to {town}: {team}
What is wrong with the {team}?
""", """I have followed the {team} since I could walk.
The {team} have {titles} titles, and that was a while ago.
{captain} spoke in the Courier about {sport} in {town}.
""", """What do you think?
Who is going on Saturday?
Patience, or a new coach?
""", """{captain} gave everything, as always.
Founded in {founded}, patient ever since.
In {town} they will tell you otherwise.
{sport} is cruel. I will be there on Saturday.
Train the young ones and the rest follows.
{titles} titles. Count them again.
"""),
],
"gardening": [
(things("""tomatoes, an old apple tree, roses in salt wind, a hedge for birds, rhubarb, a bee meadow, potatoes, lavender, a fern bed, leeks, runner beans,
a walled garden, pears on a wall""".replace("\n", " ")), """Help with {thing}
{Thing} near {town}: too late to plant?
What eats {thing}?
{Thing}: best soil?
Swap: seeds and cuttings for {thing}
""", """This is my second year with {thing}, and I am losing.
The garden faces north, the wind comes from the sea, and I wanted {thing}.
An old neighbour in {town} left me all the tools.
""", """What would you do in June?
Is there hope?
Which sort do you grow?
""", """Water in the morning, never at noon.
Coffee grounds. I am not taking questions.
Wexcombe growers have sold me good ones for years.
Leave it alone and it will forgive you.
Ask orchardist, it keeps records better than I do.
Put it on the south wall next year.
"""),
],
"photography": [
(landmarks(), """The {landmark} at dawn
How to photograph the {landmark} without people?
{landmark}: which lens?
""", """Got up at four for the {landmark} in {town}.
The light at {address} is right for eleven minutes a day.
""", """How would you have framed it?
Criticism welcome.
""", """Go lower. It is {height} metres, let it look like it.
From across the street at {address} you get the roof as well.
Grey days suit a {kind}.
Wait for a bicycle.
"""),
(parks(), """{wildlife} at {park}: patience needed
Meet for a photo walk in {park}?
""", """Three hours in {park}, two blurred pictures.
{park} is at its best after rain.
""", """Which time of the day?
Who is coming?
""", """Early, and from down wind.
I am in, with a flask.
{paths} km of paths, choose the quiet ones.
"""),
],
"travel": [
(parks(), """A day in {park}: which path?
Dogs in {park}?
Camping near {park}
""", """We have one free day and want to see {wildlife}.
{park} near {town} has {paths} km of paths, the map says.
""", """Which one would you take with children?
Is there a bus?
""", """{area} hectares, you will be alone after ten minutes.
Protected since {established}, so stay on the paths.
The bus from {town} goes twice a day.
Bring your own water.
"""),
(rivers(), """Walking along the {river} from {source}
Canoe on the {river}?
How clean is the {river}?
""", """The {river} is {length} km long, which should do for four days.
I grew up on the {river} and never saw its source.
""", """Has anybody done it?
Where do you sleep on the way?
""", """Start at {source}, finish at {mouth}, do not hurry.
The stretch below {town} is the prettiest.
After rain, leave it to the ducks.
"""),
(pois("hotel"), """{place} in {town}: would you stay again?
Cheaper than {place} in {town}?
""", """We slept at {place}, {address}.
The {place} in {town} has rooms again.
""", """How is the breakfast?
Is it quiet?
""", """{stars} stars from me.
Ring {phone} and ask for a room at the back.
Quiet until the church bells.
"""),
],
"BuyItForLife": [
(lines(), """{maker} {line}: still going after years
{line} broke: is {maker} still good?
Which {category} last?
{rival} or {maker} for {category}?
""", """I bought {category} by {maker} in {launched} and use them daily.
"{slogan}", says {maker}. Let us see.
Third set of {category} in five years, I have had enough.
""", """What do you own that lasts?
Repair or replace?
Who makes them like they used to?
""", """{maker} in {town} repaired mine without a question.
{warranty} of warranty says it all.
{rival} never lasted a winter with me.
Buy second-hand, the old ones were heavier.
I reviewed it in the shop, three stars.
Oil it once a year and it will outlive you.
"""),
],
}

# Replies that fit any thread: the small talk of a real forum.
REPLIES = """Good question, following.
Thank you for writing this down.
Came here to say the same.
I am not so sure about that.
This. Exactly this.
You are lucky, it used to be worse.
Could you say a bit more?
Same here in {home}.
I asked my sister in {home}, and she agrees.
Not in my experience, but I am from {home}.
It depends on the weather, like everything on this island.
Bookmarked for the winter.
Wrong forum, right question.
The answer was in the Courier last month.
Never change, Larkmoor.
I tried it and it works.
I tried it and it does not work.
Would you do it again?
Let us know how it goes.
There was a long thread about this two years ago.
My grandfather would have something to say here.
Seconded.
That made my day.
Please post a picture.
Two words: bring a coat.
You will not regret it.
"""

THANKS = """Thanks, @{to}, that helps.
@{to} thank you, I will try that.
I had not thought of that, @{to}.
Good to know. Thanks everybody!
Update: it worked. Thanks, @{to}.
"""

RULES = """Welcome to **{forum}**. {about}

* Be kind to newcomers; everybody was one.
* Use a title that says what you want to know.
* No selling, except where the forum says so.
* Report what breaks the rules instead of answering it.
"""

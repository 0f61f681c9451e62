# Turns `amenity=cafe: cafe, cafes` into Nominatim's table of special phrases: alone, "in" and "near".
BEGIN { FS = ": *"; print "phrase,class,type,operator" }
{
    split($1, tag, "=")
    count = split($2, words, ", *")
    for (at = 1; at <= count; at++) {
        print words[at] "," tag[1] "," tag[2] ",-"
        print words[at] " in," tag[1] "," tag[2] ",in"
        print words[at] " near," tag[1] "," tag[2] ",near"
    }
}

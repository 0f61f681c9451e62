select /* a comment; of no harm */ a, t.b from t -- more
 where a in (1, 2) # rest

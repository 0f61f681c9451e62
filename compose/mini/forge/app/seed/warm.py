def crawl():
    pass

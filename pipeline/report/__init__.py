"""Reports: gold tables, added up in Spark, as Markdown, HTML and CSV that begin with what to do first.

`summaries` adds up, `facts` holds what came out, `collect` reads the tables; `first` and the sections put it into words
and tables, `plots` draws it, and `markdown`, `html` and `csvs` write it down. Equal tables give equal bytes.
"""

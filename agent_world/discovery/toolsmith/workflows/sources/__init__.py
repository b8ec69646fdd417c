"""The source of workflow tools as templates; `$words` stand for what the data calls things."""

"""What runs inside: standard library only, laid flat into /guest, each module imported by its bare name."""

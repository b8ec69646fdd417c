"""Every asset of the package `assets`."""

import dagster as dg

import assets

ASSETS = dg.load_assets_from_package_module(assets)

"""Engines that speak Spark Connect: Apache Spark and Sail."""

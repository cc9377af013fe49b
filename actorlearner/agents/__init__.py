"""The algorithms, behind the interface of builder.py; registry.py finds them by name.

NAME.py has an algorithm's configuration keys and builder, and imports TensorFlow only inside functions;
NAME_agent.py has its agent, and imports TensorFlow at once.
"""

"""The variable container: how the policy's weights travel from the learner to the actors."""

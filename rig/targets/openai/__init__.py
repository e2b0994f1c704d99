"""Any OpenAI-compatible servers: mlx_lm.server, llama.cpp, vLLM, Ollama. They serve chat; the rest is the rig's to see."""
